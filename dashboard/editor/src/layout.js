// What the preview shows, from the options of a request.

const UNITS = { px: 1, in: 96, cm: 96 / 2.54, mm: 96 / 25.4, pt: 96 / 72 };
// The margin of a paper for which neither the request nor the page has one: 1 cm.
const DEFAULT_MARGIN = UNITS.cm;

// A length of the API in CSS pixels; undefined if it is not one.
function pixels(text) {
  const [, number, unit = "px"] = /^\s*([\d.]+)(px|in|cm|mm|pt)?\s*$/.exec(text ?? "") ?? [];
  return number === undefined || Number.isNaN(Number(number)) ? undefined : Number(number) * UNITS[unit];
}

// `values` are the options as text, by name; `papers` has width and height of each paper size, in CSS pixels; `fill` replaces
// placeholders. The result has width and height in CSS pixels, and for a PDF what is known of its paper.
export function layoutOf(values, papers, fill = (text) => text) {
  const number = (name, otherwise) => (Number(values[name]) > 0 ? Number(values[name]) : otherwise);
  const css = values.css ?? "";
  if (values.format !== "pdf") {
    const isWhole = values.fullPage === "true";
    return { width: number("width", 1280), height: number("height", 720), css, isWhole, paper: null };
  }
  let [width, height] = papers[values.pdfFormat] ?? papers.A4;
  const own = [pixels(values.pdfWidth), pixels(values.pdfHeight)];
  if (own.every((length) => length > 0)) [width, height] = own;
  if (values.landscape === "true" && height > width) [width, height] = [height, width];
  const ofSide = (side) => pixels(values[`margin.${side}`]);
  const sides = ["top", "right", "bottom", "left"];
  const all = pixels(values.margin);
  const isGiven = all !== undefined || sides.some((side) => ofSide(side) !== undefined);
  const margin = isGiven ? Object.fromEntries(sides.map((side) => [side, ofSide(side) ?? all ?? 0])) : null;
  const paper = {
    width, height, margin, defaultMargin: DEFAULT_MARGIN, scale: number("scale", 1),
    prefersPage: values.preferCssPageSize === "true", isSingle: values.singlePage === "true",
    header: fill(values.headerFirstHtml ?? values.headerHtml ?? ""),
    footer: fill(values.footerFirstHtml ?? values.footerHtml ?? ""),
  };
  return { width, height, css, isWhole: true, paper };
}
