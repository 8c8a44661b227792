import InlineWorker from '../src/captcha/worker.ts?worker&inline';

/** Starts the worker from the text of the component: a page of another origin may not load one from here. */
export const newWorker = (): Worker => new InlineWorker();
