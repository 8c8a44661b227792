import { signal } from '@preact/signals';

const text = signal('');

/** Has screen readers read a text out, politely; also when it is the same as before. */
export function readOut(words: string): void {
  text.value = text.peek() === words ? `${words}\u00a0` : words;
}

/** The region that is read out. */
export function LiveRegion() {
  return (
    <div class="sr-only" role="status" aria-live="polite">
      <p key={text.value}>{text.value}</p>
    </div>
  );
}
