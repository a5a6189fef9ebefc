// The panes of a page with a form as tabs. Where there is room for two columns, the form, which is the first pane, is always
// shown, and only those beside it are tabs.

const editor = document.querySelector(".editor");
const panes = [...(editor?.querySelectorAll("[data-tab]") ?? [])];
const isNarrow = matchMedia("(max-width: 60rem)");
const tabs = new Map(panes.map((pane) => [pane, tabOf(pane)]));
let [selected, beside] = panes;

function tabOf(pane) {
  const tab = document.createElement("button");
  Object.assign(tab, { type: "button", id: `${pane.id}-tab`, textContent: pane.dataset.tab });
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", pane.id);
  tab.addEventListener("click", () => select(pane));
  return tab;
}

function show() {
  for (const [pane, tab] of tabs) {
    const isFixed = pane === panes[0] && !isNarrow.matches;
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

// Where the page was scrolled to while a pane was shown alone.
const scrolled = new Map();

function select(pane) {
  scrolled.set(selected, scrollY);
  selected = pane;
  if (pane !== panes[0]) beside = pane;
  show();
  if (isNarrow.matches) scrollTo(0, scrolled.get(pane) ?? Math.min(scrollY, editor.offsetTop));
}

// Shows the pane that an element is in.
export function reveal(element) {
  const pane = element.closest("[data-tab]");
  if (pane?.hidden) select(pane);
}

export function paneTabs() {
  if (!editor) return;
  const list = editor.querySelector(".tabs");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Panes");
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
  editor.classList.add("tabbed");
  show();
}
