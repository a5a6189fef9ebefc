//! Revisions and editors of templates.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    step(
        51,
        "templates: revision",
        // A save of another revision than the stored one is a conflict of two editors.
        "ALTER TABLE templates ADD COLUMN revision INTEGER NOT NULL DEFAULT 1",
    ),
    // An e-mail address or `command line`; NULL for what was saved before this column existed.
    step(52, "templates: last editor", "ALTER TABLE templates ADD COLUMN saved_by TEXT"),
    step(53, "template versions: editor", "ALTER TABLE template_versions ADD COLUMN saved_by TEXT"),
    step(54, "template versions: the trigger without the editor", "DROP TRIGGER template_versions_kept"),
    step(
        55,
        "template versions: kept by every save, with the editor",
        "CREATE TRIGGER template_versions_kept AFTER UPDATE OF name, packed_html ON templates \
            WHEN old.packed_html IS NOT new.packed_html OR old.name IS NOT new.name \
            BEGIN \
            INSERT INTO template_versions \
            (template_id, number, account_id, name, packed_html, placeholders, saved_at, saved_by) \
            SELECT old.id, 1 + coalesce((SELECT max(number) FROM template_versions \
            WHERE template_id = old.id), 0), old.account_id, old.name, old.packed_html, \
            old.placeholders, old.updated_at, old.saved_by; \
            END",
    ),
];
