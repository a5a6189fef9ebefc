// Drafts of the template editor: what was typed and not saved, by user and template. IndexedDB, because a template
// may be larger than what localStorage holds. `app.js`, which every page has, opens it.
/* global withDrafts */

export const putDraft = (key, draft) => withDrafts("readwrite", (drafts) => drafts.put(draft, key)).catch(() => {});
export const deleteDraft = (key) => withDrafts("readwrite", (drafts) => drafts.delete(key)).catch(() => {});
export const getDraft = (key) => withDrafts("readonly", (drafts) => drafts.get(key)).catch(() => undefined);
