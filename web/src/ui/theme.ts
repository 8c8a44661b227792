import { effect, signal } from '@preact/signals';

/** Colours: as the system has them, or the person's choice. */
export type Theme = 'system' | 'light' | 'dark';

const order: Theme[] = ['system', 'light', 'dark'];

/** The theme in use. */
export const theme = signal<Theme>((localStorage.getItem('theme') as Theme | null) ?? 'system');

/** Goes on to the next theme and remembers it. */
export function nextTheme(): void {
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length]!;
  localStorage.setItem('theme', theme.value);
}

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
});
