// What the preview shows, from the options of a request.

const UNITS = { px: 1, in: 96, cm: 96 / 2.54, mm: 96 / 25.4, pt: 96 / 72 };
// The margin of a paper for which neither the request nor the page has one: 1 cm.
const DEFAULT_MARGIN = UNITS.cm;

// The fields that the preview shows; and what is rendered, which is no option.
const SHOWN = [
  "html",
  "url",
  "templateId",
  "variables",
  "data",
  "assets",
  "format",
  "css",
  "mediaType",
  "width",
  "height",
  "fullPage",
  "selector",
  "clip",
  "pdfFormat",
  "pdfWidth",
  "pdfHeight",
  "landscape",
  "margin",
  "scale",
  "preferCssPageSize",
  "singlePage",
  "printBackground",
  "headerHtml",
  "footerHtml",
  "headerFirstHtml",
  "footerFirstHtml",
];

// A length of the API in CSS pixels; undefined if it is not one.
function pixels(text) {
  const [, number, unit = "px"] = /^\s*([\d.]+)(px|in|cm|mm|pt)?\s*$/.exec(text ?? "") ?? [];
  return number === undefined || Number.isNaN(Number(number)) ? undefined : Number(number) * UNITS[unit];
}

// `values` are the options as text, by name; `papers` has width and height of each paper size, in CSS pixels; `fill` replaces
// placeholders. The result has width and height in CSS pixels, for an image the part of the page that it shows (a selector or a
// rectangle; null for all), for a PDF what is known of its paper, and the names of the options that are not shown.
export function layoutOf(values, papers, fill = (text) => text) {
  const number = (name, otherwise) => (Number(values[name]) > 0 ? Number(values[name]) : otherwise);
  const isPdf = values.format === "pdf";
  const given = Object.keys(values)
    .filter((name) => values[name] !== "")
    .map((name) => name.split(".")[0]);
  const common = {
    css: values.css ?? "",
    // What the paths of files are relative to.
    base: URL.canParse(values.baseUrl) ? values.baseUrl : "https://document.invalid/",
    isPrint: isPdf ? values.mediaType !== "screen" : values.mediaType === "print",
    notShown: [...new Set(given)].filter((name) => !SHOWN.includes(name)),
  };
  if (!isPdf) {
    const [x, y, ...size] = ["x", "y", "width", "height"].map((name) => Number(values[`clip.${name}`] || NaN));
    const clip =
      x >= 0 && y >= 0 && size.every((length) => length > 0) ? { x, y, width: size[0], height: size[1] } : null;
    const isWhole = values.fullPage === "true";
    return {
      ...common,
      width: number("width", 1280),
      height: number("height", 720),
      isWhole,
      part: values.selector || clip,
      paper: null,
    };
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
    width,
    height,
    margin,
    defaultMargin: DEFAULT_MARGIN,
    scale: number("scale", 1),
    hasBackground: values.printBackground === "true",
    prefersPage: values.preferCssPageSize === "true",
    isSingle: values.singlePage === "true",
    header: fill(values.headerHtml ?? ""),
    footer: fill(values.footerHtml ?? ""),
    firstHeader: fill(values.headerFirstHtml || values.headerHtml || ""),
    firstFooter: fill(values.footerFirstHtml || values.footerHtml || ""),
  };
  return { ...common, width, height, isWhole: true, part: null, paper };
}
