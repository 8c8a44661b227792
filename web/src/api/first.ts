/** The response to the first query of the page, which the server puts into it. */

let first: { body: string; data: unknown } | null = read();

function read(): { body: string; data: unknown } | null {
  const element = document.getElementById('first');
  if (!element) return null;
  element.remove();
  try {
    const { body, data } = JSON.parse(element.textContent!);
    return { body: JSON.stringify(body), data };
  } catch {
    return null;
  }
}

/** Whether the page came with data. */
export const hasFirst = first !== null;

/** The data for a request body, once: a second request is sent. */
export function takeFirst(body: string): unknown {
  if (first?.body !== body) return null;
  const { data } = first;
  first = null;
  return data;
}
