/** Finds the number of a proof of work beside the page, and tells how far it is. */
import { search, type Work } from './work';

/** How many numbers are tried between two reports. */
const STEP = 20_000;

/** What the worker says: the share tried so far, then the number. */
export type Report = { share: number } | { answer: string } | { failed: true };

addEventListener('message', ({ data: work }: MessageEvent<Work>) => {
  for (let from = 0; from <= work.maxNumber; from += STEP) {
    const found = search(work, from, Math.min(from + STEP, work.maxNumber + 1));
    if (found !== null) return postMessage({ answer: String(found) } satisfies Report);
    postMessage({ share: from / work.maxNumber } satisfies Report);
  }
  postMessage({ failed: true } satisfies Report);
});
