/** Solves a proof of work beside the page: in a worker, or in steps on the page where none can be had. */
import { newWorker } from './spawn.ts';
import { readWork, search, STEP } from './work.ts';
import type { Report } from './worker.ts';

/** How many numbers the page tries at once, so that it still paints on slow phones. */
const PAGE_STEP = STEP / 4;
/** How long a worker may say nothing before the page computes itself, in ms. */
const SILENT_MS = 5_000;

let said = false;

/** Says once why proofs of work are computed on the page: a bundler or a Content-Security-Policy can be corrected. */
function warn(why: string): void {
  if (!said) console.warn(`@seckill/client: no worker for the proof of work (${why}); the page computes it in steps`);
  said = true;
}

/** A worker that has no work yet. */
let idle: Worker | null = null;

/** Starts the worker for the next proof of work, while its challenge is on the way. */
export function warm(): void {
  try {
    idle ??= newWorker();
  } catch {
    // `work` says why there is none
  }
}

/** Searches the number and reports the progress; returns a function that stops it. */
export function work(parameters: string, on: (report: Report) => void): () => void {
  if (typeof Worker === 'undefined') return inSteps(parameters, on); // Node
  let worker: Worker;
  try {
    worker = idle ?? newWorker(); // throws for a script of another origin
    idle = null;
  } catch (thrown) {
    warn(String(thrown));
    return inSteps(parameters, on);
  }
  const stopWorker = (): void => {
    clearTimeout(silent);
    worker.terminate();
  };
  let stop = stopWorker;
  const fallBack = (why: string): void => {
    stopWorker();
    warn(why);
    stop = inSteps(parameters, on);
  };
  const silent = setTimeout(fallBack, SILENT_MS, 'it does not start');
  worker.onmessage = ({ data }: MessageEvent<Report>) => {
    clearTimeout(silent);
    on(data);
  };
  worker.onerror = ({ message }) => fallBack(message || 'its script is not found, or a Content-Security-Policy forbids it');
  worker.postMessage(readWork(parameters));
  return () => stop();
}

/** The answer to a proof of work. `progress` gets the share that was tried. */
export function solve(parameters: string, progress: (share: number) => void = () => {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const stop = work(parameters, (report) => {
      if ('share' in report) return progress(report.share);
      stop();
      if ('answer' in report) resolve(report.answer);
      else reject(new Error('the proof of work has no solution'));
    });
  });
}

function inSteps(parameters: string, on: (report: Report) => void): () => void {
  const task = readWork(parameters);
  let timer: ReturnType<typeof setTimeout>;
  const from = (start: number): void => {
    if (start > task.maxNumber) return on({ failed: true });
    const found = search(task, start, Math.min(start + PAGE_STEP, task.maxNumber + 1));
    if (found !== null) return on({ answer: String(found) });
    on({ share: start / task.maxNumber });
    timer = setTimeout(from, 0, start + PAGE_STEP);
  };
  timer = setTimeout(from, 0, 0);
  return () => clearTimeout(timer);
}
