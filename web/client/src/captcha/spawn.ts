/** Starts the worker. A module of its own: the component of one file has another one. */
export const newWorker = (): Worker => new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
