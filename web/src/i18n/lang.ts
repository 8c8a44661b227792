import { effect, signal } from '@preact/signals';
import { persistentStore } from '../api/storage';

/** Languages of the shop. */
export type Lang = 'en' | 'zh';

function initial(): Lang {
  const wanted = new URLSearchParams(location.search).get('lang') ?? persistentStore.getItem('lang') ?? navigator.language;
  return wanted.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** The language in use: from the address, else the last choice, else the browser's. */
export const lang = signal<Lang>(initial());

/** BCP 47 tag of the language in use. */
export const tag = (): string => (lang.value === 'zh' ? 'zh-CN' : 'en');

effect(() => {
  document.documentElement.lang = tag();
});
