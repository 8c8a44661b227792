import { signal } from '@preact/signals';

const text = signal('');

/** Announces a text to screen readers, politely; also when it is the same as before. */
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
