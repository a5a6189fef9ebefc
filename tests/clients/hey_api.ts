// Renders with a client of @hey-api/openapi-ts. Prints the error of an invalid request.
import { writeFile } from "node:fs/promises";

import { client } from "./generated/client.gen.js";
import { type Error as ApiError, render, renderTemplate } from "./generated/index.js";

client.setConfig({ baseUrl: process.env["PLATEN_URL"] ?? "", auth: process.env["PLATEN_KEY"] ?? "" });

const pdf = await render({
  body: {
    html: "<h1>First</h1><h1 style='break-before: page'>Second</h1>",
    format: "pdf",
    pdfFormat: "A5",
    landscape: true,
    margin: { top: "20mm", left: 40 },
    pageRanges: "2",
  },
});
if (!pdf.data) throw new Error(pdf.error.error);
await writeFile("page.pdf", Buffer.from(await pdf.data.arrayBuffer()));

const png = await render({
  body: { html: "<body style='background: lime'>", format: "png", clip: { x: 0, y: 0, width: 60, height: 40 } },
});
if (!png.data) throw new Error(png.error.error);
await writeFile("picture.png", Buffer.from(await png.data.arrayBuffer()));

const template = await renderTemplate({
  body: {
    templateId: process.env["PLATEN_TEMPLATE"] ?? "",
    variables: { customer: "Ann", total: 10.5, markup: "<b>Paid</b>" },
    format: "pdf",
    margin: "10mm",
  },
});
if (!template.data) throw new Error(template.error.error);
await writeFile("template.pdf", Buffer.from(await template.data.arrayBuffer()));

const refused = await render({ body: { html: "x", width: 0 } });
const error: ApiError | undefined = refused.error;
console.log(JSON.stringify([refused.response?.status, error?.code, error?.field, error?.error]));

/** Does not compile without the comments, and is not called. */
export function wrongTypes() {
  // @ts-expect-error A text is not a number.
  void render({ body: { html: "x", width: "wide" } });
  // @ts-expect-error Not one of the formats.
  void render({ body: { html: "x", format: "gif" } });
  // @ts-expect-error No such field.
  void render({ body: { html: "x", paper: "A4" } });
  // @ts-expect-error `templateId` is required.
  void renderTemplate({ body: { variables: {} } });
}
