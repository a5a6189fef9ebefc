// A rendered file: an image in one of two sizes, a PDF in a frame if the browser shows PDFs, and the download.

const element = (id) => document.getElementById(id);
let address = null;

// With decimal units, rounded down, as on the other pages.
export function sizeOf({ size }) {
  if (size < 1000) return `${size} B`;
  const [unit, name] = size < 1_000_000 ? [1000, "KB"] : [1_000_000, "MB"];
  return `${(Math.floor((size * 10) / unit) / 10).toFixed(1)} ${name}`;
}

export async function showResult(file, name) {
  if (address !== null) URL.revokeObjectURL(address);
  address = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = address;
  link.className = "button quiet";
  link.download = name;
  link.textContent = `Download ${name}`;
  const row = document.createElement("div");
  row.className = "row";
  row.append(link);
  const view = file.type.startsWith("image/") ? image(row) : await pdf(file);
  const result = element("rendered");
  result.replaceChildren(view, row);
  result.hidden = false;
  element("no-result").hidden = true;
}

function image(row) {
  const picture = document.createElement("img");
  picture.src = address;
  picture.alt = "The rendered image";
  const view = document.createElement("div");
  view.className = "zoomable";
  view.tabIndex = 0;
  view.setAttribute("role", "region");
  view.setAttribute("aria-label", "The rendered image");
  view.append(picture);
  const size = document.createElement("span");
  size.className = "dim";
  picture.addEventListener("load", () => {
    size.textContent = `${picture.naturalWidth} × ${picture.naturalHeight} pixels`;
  });
  const zoom = document.createElement("button");
  zoom.type = "button";
  zoom.className = "quiet";
  zoom.textContent = "Actual size";
  zoom.setAttribute("aria-pressed", "false");
  const toggle = () => {
    const isActual = view.classList.toggle("actual");
    zoom.setAttribute("aria-pressed", String(isActual));
  };
  zoom.addEventListener("click", toggle);
  picture.addEventListener("click", toggle);
  row.append(zoom, size);
  return view;
}

async function pdf(file) {
  if (!navigator.pdfViewerEnabled) {
    const note = document.createElement("p");
    const counts = [...(await file.text()).matchAll(/\/Count (\d+)/g)].map(([, count]) => Number(count));
    const pages = Math.max(0, ...counts);
    const length = pages === 0 ? "" : `, ${pages} ${pages === 1 ? "page" : "pages"}`;
    note.textContent = `A PDF (${sizeOf(file)}${length}). This browser does not show PDFs in a page: download it to open it.`;
    return note;
  }
  const frame = document.createElement("iframe");
  frame.src = `${address}#navpanes=0`;
  frame.title = "The rendered PDF";
  frame.className = "pdf";
  return frame;
}
