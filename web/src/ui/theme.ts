import { computed, effect, signal } from '@preact/signals';
import { persistentStore } from '../api/storage';

/** The theme of the system, or the user's choice. */
export type Theme = 'system' | 'light' | 'dark';

const order: Theme[] = ['system', 'light', 'dark'];

/** The theme in use. */
export const theme = signal<Theme>((persistentStore.getItem('theme') as Theme | null) ?? 'system');

const system = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(system.matches);
system.addEventListener('change', () => (systemDark.value = system.matches));

/** Whether the colours are dark now. */
export const dark = computed(() => (theme.value === 'system' ? systemDark.value : theme.value === 'dark'));

/** Switches to the next theme and keeps it. */
export function nextTheme(): void {
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length]!;
  persistentStore.setItem('theme', theme.value);
}

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
});
