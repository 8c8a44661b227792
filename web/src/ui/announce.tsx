import { signal } from '@preact/signals';

const text = signal('');

/** Says something to screen readers, politely. The same words twice are said twice. */
export function announce(words: string): void {
  text.value = text.peek() === words ? `${words}\u00a0` : words;
}

/** The region that is read out. */
export function Announcer() {
  return (
    <div class="sr-only" role="status" aria-live="polite">
      <p key={text.value}>{text.value}</p>
    </div>
  );
}
