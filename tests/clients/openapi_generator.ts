// Renders with a client of openapi-generator's `typescript-fetch`. Prints the error of an invalid request.
import { writeFile } from "node:fs/promises";

import {
  Configuration,
  ModelErrorFromJSON,
  RenderApi,
  RenderRequestFormatEnum,
  RenderRequestPdfFormatEnum,
  ResponseError,
} from "./generated/index.js";

const api = new RenderApi(
  new Configuration({ basePath: process.env["PLATEN_URL"] ?? "", accessToken: process.env["PLATEN_KEY"] ?? "" }),
);

async function save(name: string, file: Blob) {
  await writeFile(name, Buffer.from(await file.arrayBuffer()));
}

const html = "<h1>First</h1><h1 style='break-before: page'>Second</h1>";
await save(
  "page.pdf",
  await api.render({
    renderRequest: {
      html,
      format: RenderRequestFormatEnum.Pdf,
      pdfFormat: RenderRequestPdfFormatEnum.A5,
      landscape: true,
      margin: { top: "20mm", left: 40 },
      pageRanges: "2",
    },
  }),
);
const clip = { x: 0, y: 0, width: 60, height: 40 };
await save(
  "picture.png",
  await api.render({ renderRequest: { html: "<body style='background: lime'>", format: "png", clip } }),
);
await save(
  "template.pdf",
  await api.renderTemplate({
    templateRenderRequest: {
      templateId: process.env["PLATEN_TEMPLATE"] ?? "",
      variables: { customer: "Ann", total: 10.5, markup: "<b>Paid</b>" },
      format: "pdf",
      margin: "10mm",
    },
  }),
);

try {
  await api.render({ renderRequest: { html: "x", width: 0 } });
} catch (refused) {
  if (!(refused instanceof ResponseError)) throw refused;
  const error = ModelErrorFromJSON(await refused.response.json());
  console.log(JSON.stringify([refused.response.status, error.code, error.field, error.error]));
}

/** Does not compile without the comments, and is not called. */
export function wrongTypes() {
  // @ts-expect-error A text is not a number.
  void api.render({ renderRequest: { html: "x", width: "wide" } });
  // @ts-expect-error Not one of the formats.
  void api.render({ renderRequest: { html: "x", format: "gif" } });
  // @ts-expect-error No such field.
  void api.render({ renderRequest: { html: "x", paper: "A4" } });
  // @ts-expect-error `templateId` is required.
  void api.renderTemplate({ templateRenderRequest: { variables: {} } });
}
