// Panes as tabs: those of a page with a form, and those of the form. Where there is room for two columns, the form, which is
// the first pane of the page, is always shown, and only those beside it are tabs.
import { addDivider } from "./divider.js";

const isNarrow = matchMedia("(max-width: 60rem)");
// What shows a pane.
const selectors = new Map();

// Fills `list` with the tabs of `panes`, whose titles are in `data-tab` or `data-part`. `hasFixed` says whether the first pane
// is shown beside the others where there is room.
function tabList(list, label, panes, hasFixed) {
  const tabs = new Map(panes.map((pane) => [pane, tabOf(pane)]));
  let [selected, beside] = hasFixed ? panes : [panes[0], panes[0]];
  // Where the page was scrolled to while a pane was shown alone.
  const scrolled = new Map();

  function tabOf(pane) {
    const tab = document.createElement("button");
    Object.assign(tab, { type: "button", id: `${pane.id}-tab`, textContent: pane.dataset.tab ?? pane.dataset.part });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", pane.id);
    tab.addEventListener("click", () => select(pane));
    selectors.set(pane, () => select(pane));
    return tab;
  }

  function show() {
    for (const [pane, tab] of tabs) {
      const isFixed = hasFixed && pane === panes[0] && !isNarrow.matches;
      const isSelected = pane === (isNarrow.matches ? selected : beside);
      tab.hidden = isFixed;
      tab.tabIndex = isSelected ? 0 : -1;
      tab.setAttribute("aria-selected", String(isSelected));
      pane.hidden = !isSelected && !isFixed;
      for (const [name, value] of [
        ["role", "tabpanel"],
        ["aria-labelledby", tab.id],
        ["tabindex", "0"],
      ]) {
        if (isFixed) pane.removeAttribute(name);
        else pane.setAttribute(name, value);
      }
    }
  }

  function select(pane) {
    scrolled.set(selected, scrollY);
    selected = pane;
    if (!hasFixed || pane !== panes[0]) beside = pane;
    show();
    if (isNarrow.matches) scrollTo(0, scrolled.get(pane) ?? Math.min(scrollY, list.parentElement.offsetTop));
  }

  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", label);
  list.append(...tabs.values());
  list.addEventListener("keydown", (event) => {
    const shown = [...tabs.values()].filter((tab) => !tab.hidden);
    const at = shown.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + shown.length, Home: 0, End: shown.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = shown[to % shown.length];
    tab.focus();
    tab.click();
  });
  isNarrow.addEventListener("change", show);
  show();
}

// Shows the panes that an element is in.
export function reveal(element) {
  for (const [pane, select] of selectors) if (pane.hidden && pane.contains(element)) select();
}

export function paneTabs() {
  const editor = document.querySelector(".editor");
  if (!editor) return;
  tabList(editor.querySelector(".bar .tabs"), "Panes", [...editor.querySelectorAll("[data-tab]")], true);
  const parts = [...editor.querySelectorAll("[data-part]")];
  if (parts.length > 0) tabList(editor.querySelector("form .tabs"), "Parts of the template", parts, false);
  editor.classList.add("tabbed");
  addDivider(editor);
  // What the server has refused.
  const refused = editor.querySelector("[aria-invalid], form .error:not([hidden])");
  if (refused) reveal(refused);
}
