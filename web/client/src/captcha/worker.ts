/** Finds the number of a proof of work in a worker, and reports the progress. */
import { search, STEP, type Work } from './work.ts';

/** Messages of the worker: the share tried so far, then the number. */
export type Report = { share: number } | { answer: string } | { failed: true };

addEventListener('message', ({ data: work }: MessageEvent<Work>) => {
  for (let from = 0; from <= work.maxNumber; from += STEP) {
    const found = search(work, from, Math.min(from + STEP, work.maxNumber + 1));
    if (found !== null) return postMessage({ answer: String(found) } satisfies Report);
    postMessage({ share: from / work.maxNumber } satisfies Report);
  }
  postMessage({ failed: true } satisfies Report);
});
