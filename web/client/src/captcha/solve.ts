/** Solves a proof of work beside the page: in a worker, or in steps where there is none. */
import { readWork, search, STEP } from './work.ts';
import type { Report } from './worker.ts';

/** Searches the number and reports the progress; returns a function that stops it. */
export function work(parameters: string, on: (report: Report) => void): () => void {
  if (typeof Worker === 'undefined') return inSteps(parameters, on);
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
  worker.onmessage = ({ data }: MessageEvent<Report>) => on(data);
  worker.onerror = () => on({ failed: true });
  worker.postMessage(readWork(parameters));
  return () => worker.terminate();
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
    const found = search(task, start, Math.min(start + STEP, task.maxNumber + 1));
    if (found !== null) return on({ answer: String(found) });
    on({ share: start / task.maxNumber });
    timer = setTimeout(from, 0, start + STEP);
  };
  timer = setTimeout(from, 0, 0);
  return () => clearTimeout(timer);
}
