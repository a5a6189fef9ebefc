// What a browser keeps of an origin: drafts of the template editor, which are what was typed and not saved, by user and template,
// and small values. Storage that is not available, as in some private windows, keeps nothing.
// Drafts are in IndexedDB, because a template may be larger than what localStorage holds. `app.js`, which every page has, opens it.
/* global withDrafts */

export const putDraft = (key, draft) => withDrafts("readwrite", (drafts) => drafts.put(draft, key)).catch(() => {});
export const deleteDraft = (key) => withDrafts("readwrite", (drafts) => drafts.delete(key)).catch(() => {});
export const getDraft = (key) => withDrafts("readonly", (drafts) => drafts.get(key)).catch(() => undefined);

export function stored(act) {
  try {
    return act(localStorage);
  } catch {
    return null;
  }
}
