import { signal } from '@preact/signals';

const shown = signal<{ text: string; n: number } | null>(null);
const SHOWN_MS = 4_000;
let n = 0;

/** Shows a short message. */
export function toast(text: string): void {
  const mine = ++n;
  shown.value = { text, n: mine };
  setTimeout(() => shown.peek()?.n === mine && (shown.value = null), SHOWN_MS);
}

/** Shows a system notification where it is allowed, else a short message. */
export function notify(text: string): void {
  try {
    if ('Notification' in globalThis && Notification.permission === 'granted') return void new Notification(text);
  } catch {
    // Chrome on Android allows them in service workers only, and throws here
  }
  toast(text);
}

/** Where the messages appear. They are read out too. */
export function Toasts() {
  return (
    <div class="pointer-events-none fixed inset-x-0 top-20 z-30 flex justify-center px-4 max-sm:top-28" role="status">
      {shown.value && (
        <p key={shown.value.n} data-toast dir="auto" class="rise rounded-xl bg-ink px-4 py-2 text-page shadow-lg">
          {shown.value.text}
        </p>
      )}
    </div>
  );
}
