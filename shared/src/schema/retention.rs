//! How long versions of templates, the audit log and attempts are kept.

use super::{Migration, step};

pub(super) const STEPS: &[Migration] = &[
    step(
        93,
        "retention",
        // One row. NULL is no limit. An update of `pruned_at` deletes what is due at that time, in a bounded step.
        "CREATE TABLE retention (\
            id INTEGER PRIMARY KEY CHECK (id = 1), \
            versions INTEGER CHECK (versions > 0), \
            audit_days INTEGER CHECK (audit_days > 0), \
            attempt_days INTEGER NOT NULL CHECK (attempt_days > 0), \
            pruned_at INTEGER NOT NULL, \
            last_change TEXT) STRICT",
    ),
    step(
        94,
        "retention: attempts for 30 days",
        "INSERT INTO retention (id, attempt_days, pruned_at) VALUES (1, 30, 0)",
    ),
    step(
        95,
        "templates with more versions than are kept",
        // Filled when the number is lowered, so that pruning need not look at all templates.
        "CREATE TABLE version_excess (template_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
    ),
    step(
        96,
        "retention: a step of pruning",
        "CREATE TRIGGER retention_pruned AFTER UPDATE OF pruned_at ON retention \
            BEGIN \
            DELETE FROM audit WHERE id IN (SELECT id FROM (SELECT id, at FROM audit ORDER BY id LIMIT 200) \
            WHERE at < new.pruned_at - 86400 * new.audit_days); \
            DELETE FROM attempts WHERE id IN (SELECT id FROM attempts \
            WHERE at < new.pruned_at - 86400 * new.attempt_days ORDER BY at LIMIT 200); \
            DELETE FROM template_versions WHERE template_id = (SELECT template_id FROM version_excess LIMIT 1) \
            AND number IN (SELECT number FROM template_versions v \
            WHERE v.template_id = (SELECT template_id FROM version_excess LIMIT 1) \
            AND v.number <= (SELECT max(number) FROM template_versions \
            WHERE template_id = (SELECT template_id FROM version_excess LIMIT 1)) - new.versions \
            ORDER BY v.number LIMIT 20); \
            DELETE FROM version_excess WHERE template_id = (SELECT template_id FROM version_excess LIMIT 1) \
            AND (SELECT count(*) FROM template_versions v WHERE v.template_id = version_excess.template_id) \
            <= coalesce(new.versions, 9223372036854775807); \
            END",
    ),
    audit_trigger!(
        97,
        "retention",
        "changed",
        "UPDATE OF last_change",
        "id",
        "DELETE FROM version_excess",
        "INSERT INTO version_excess (template_id) SELECT template_id FROM template_versions \
            GROUP BY template_id HAVING count(*) > new.versions"
    ),
    step(
        98,
        "retention: pruned with every entry of the audit log",
        "CREATE TRIGGER audit_pruned AFTER INSERT ON audit \
            BEGIN \
            UPDATE retention SET pruned_at = new.at; \
            END",
    ),
    step(
        99,
        "retention: versions are pruned with every save",
        "CREATE TRIGGER template_versions_pruned AFTER INSERT ON template_versions \
            WHEN (SELECT versions FROM retention) IS NOT NULL \
            BEGIN \
            DELETE FROM template_versions WHERE template_id = new.template_id AND number IN \
            (SELECT number FROM template_versions v WHERE v.template_id = new.template_id \
            AND v.number <= new.number - (SELECT versions FROM retention) ORDER BY v.number LIMIT 20); \
            END",
    ),
    step(
        100,
        "retention: attempts are pruned with every attempt",
        "CREATE TRIGGER attempts_pruned AFTER INSERT ON attempts \
            BEGIN \
            DELETE FROM attempts WHERE id IN (SELECT id FROM attempts \
            WHERE at < new.at - 86400 * (SELECT attempt_days FROM retention) ORDER BY at LIMIT 100); \
            END",
    ),
    step(
        101,
        "retention: what else is due is pruned with attempts, once a second",
        "CREATE TRIGGER attempts_prune_others AFTER INSERT ON attempts \
            WHEN new.at > (SELECT pruned_at FROM retention) AND (EXISTS (SELECT 1 FROM version_excess) \
            OR (SELECT at FROM audit ORDER BY id LIMIT 1) < new.at - 86400 * (SELECT audit_days FROM retention)) \
            BEGIN \
            UPDATE retention SET pruned_at = new.at; \
            END",
    ),
];
