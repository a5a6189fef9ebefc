// Renders with a client of openapi-fetch and the types of openapi-typescript. Prints the error of an invalid request.
import { writeFile } from "node:fs/promises";

import createClient from "openapi-fetch";

import type { components, paths } from "./generated.js";

const client = createClient<paths>({
  baseUrl: process.env["PLATEN_URL"] ?? "",
  headers: { authorization: `Bearer ${process.env["PLATEN_KEY"]}` },
});

const pdf = await client.POST("/v1/render", {
  body: {
    html: "<h1>First</h1><h1 style='break-before: page'>Second</h1>",
    format: "pdf",
    pdfFormat: "A5",
    landscape: true,
    margin: { top: "20mm", left: 40 },
    pageRanges: "2",
  },
  parseAs: "arrayBuffer",
});
if (pdf.error) throw new Error(pdf.error.error);
await writeFile("page.pdf", Buffer.from(pdf.data));

const png = await client.POST("/v1/render", {
  body: { html: "<body style='background: lime'>", format: "png", clip: { x: 0, y: 0, width: 60, height: 40 } },
  parseAs: "arrayBuffer",
});
if (png.error) throw new Error(png.error.error);
await writeFile("picture.png", Buffer.from(png.data));

const template = await client.POST("/v1/render/template", {
  body: {
    templateId: process.env["PLATEN_TEMPLATE"] ?? "",
    variables: { customer: "Ann", total: 10.5, markup: "<b>Paid</b>" },
    format: "pdf",
    margin: "10mm",
  },
  parseAs: "arrayBuffer",
});
if (template.error) throw new Error(template.error.error);
await writeFile("template.pdf", Buffer.from(template.data));

const refused = await client.POST("/v1/render", { body: { html: "x", width: 0 } });
const error: components["schemas"]["Error"] | undefined = refused.error;
console.log(JSON.stringify([refused.response.status, error?.code, error?.field, error?.error]));

/** Does not compile without the comments, and is not called. */
export function wrongTypes() {
  // @ts-expect-error A text is not a number.
  void client.POST("/v1/render", { body: { html: "x", width: "wide" } });
  // @ts-expect-error Not one of the formats.
  void client.POST("/v1/render", { body: { html: "x", format: "gif" } });
  // @ts-expect-error `templateId` is required.
  void client.POST("/v1/render/template", { body: { variables: {} } });
}
