/** One stream over server-sent events (graphql-sse, distinct connections). */
import { Fault } from './fault.ts';
import type { Http } from './http.ts';

/** Idle timeout of a stream in ms; the server sends comments as heartbeats. */
const SILENCE_MS = 45_000;
/** Timeout of the first bytes in ms: the server sends a comment at once. */
const FIRST_MS = 10_000;

/** One parsed event. */
export interface ServerEvent {
  event: string;
  data: string;
}

/** Splits a growing text into whole events; returns them and the rest. */
export function splitEvents(text: string): { events: ServerEvent[]; rest: string } {
  const blocks = text.replaceAll('\r\n', '\n').split('\n\n');
  const rest = blocks.pop()!;
  const events: ServerEvent[] = [];
  for (const block of blocks) {
    const event: ServerEvent = { event: 'message', data: '' };
    for (const line of block.split('\n')) {
      const [, field, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (field === 'event') event.event = value!;
      if (field === 'data') event.data += value;
    }
    if (event.event !== 'message' || event.data) events.push(event);
  }
  return { events, rest };
}

/**
 * Reads a stream until it completes. Throws a Fault when the connection breaks. It is
 * open with the first bytes of its body, even of a comment: a proxy that buffers
 * events may still pass the headers.
 */
export async function readEvents(
  http: Http,
  payload: object,
  bearer: string | null,
  signal: AbortSignal,
  on: { open(): void; next(result: unknown): void },
): Promise<void> {
  const quiet = new AbortController();
  let watch = setTimeout(() => quiet.abort(), FIRST_MS);
  try {
    const response = await fetch(http.options.url, {
      method: 'POST',
      headers: http.headers(bearer, 'text/event-stream'),
      body: JSON.stringify(payload),
      signal: AbortSignal.any([signal, quiet.signal]),
    });
    if (!response.ok || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
      throw new Fault('UNAVAILABLE', `HTTP ${response.status}`);
    }
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let open = false;
    for (let text = ''; ; ) {
      const { done, value } = await reader.read();
      if (done) throw new Fault('NETWORK', 'the stream was cut');
      if (!open) on.open();
      open = true;
      clearTimeout(watch);
      watch = setTimeout(() => quiet.abort(), SILENCE_MS);
      const { events, rest } = splitEvents(text + value);
      text = rest;
      for (const { event, data } of events) {
        if (event === 'complete') return;
        if (event === 'next') on.next(JSON.parse(data));
      }
    }
  } catch (thrown) {
    if (thrown instanceof Fault) throw thrown;
    throw new Fault('NETWORK', String(thrown));
  } finally {
    clearTimeout(watch);
  }
}
