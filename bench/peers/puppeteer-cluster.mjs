// puppeteer-cluster with one browser context per job, as its documentation recommends: one browser process,
// and for each job a new context and page, which are closed afterwards.
//
// Settings: BENCH_CHROMIUM, BENCH_CONCURRENCY and BENCH_RESOLVE (Chromium's host resolver rules).
import { Cluster } from "puppeteer-cluster";
import puppeteer from "puppeteer-core";

import { serve } from "./server.mjs";

const cluster = await Cluster.launch({
  puppeteer,
  concurrency: Cluster.CONCURRENCY_CONTEXT,
  maxConcurrency: Number(process.env.BENCH_CONCURRENCY),
  timeout: 120_000,
  puppeteerOptions: {
    executablePath: process.env.BENCH_CHROMIUM,
    // A pipe uses less CPU time than the default WebSocket.
    pipe: true,
    args: [`--host-resolver-rules=${process.env.BENCH_RESOLVE}`],
  },
});

async function render({ page, data: job }) {
  const { width, height, deviceScaleFactor } = job;
  await page.setViewport({ width, height, deviceScaleFactor });
  const waitUntil = job.waitUntil === "networkidle" ? "load" : job.waitUntil;
  if (job.html) await page.setContent(job.html, { waitUntil });
  else await page.goto(job.url, { waitUntil });
  if (job.waitUntil === "networkidle") await page.waitForNetworkIdle({ idleTime: 500 });
  if (job.waitForTimeout) await new Promise((resolve) => setTimeout(resolve, job.waitForTimeout));
  if (job.format === "pdf") {
    const { pdfFormat: format, printBackground, scale } = job;
    return page.pdf({ format, printBackground, scale, tagged: false, outline: false });
  }
  return page.screenshot({ type: job.format, fullPage: job.fullPage, optimizeForSpeed: true });
}

serve(
  (job) => cluster.execute(job, render),
  () => cluster.close(),
);
