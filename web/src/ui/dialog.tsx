import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { t } from '../i18n/text';
import { Icon } from './icons';

/** A modal dialog. The browser keeps the focus inside; afterwards it returns to the element that opened it. */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const title = useId();
  useLayoutEffect(() => { // before the effects of what is in it
    const dialog = ref.current!;
    const opener = document.activeElement as HTMLElement | null;
    dialog.showModal();
    dialog.focus(); // not its first button: a key that is held down would press it
    return () => {
      dialog.close();
      opener?.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog
      ref={ref}
      tabIndex={-1}
      aria-labelledby={title}
      class="card rise m-auto outline-none w-[min(26rem,100%-1.5rem)] p-5 text-ink shadow-2xl max-sm:mb-3"
      onCancel={(event) => {
        event.preventDefault();
        props.close();
      }}
    >
      <div class="mb-3 flex items-center justify-between gap-3">
        <h2 id={title} class="head">
          {props.title}
        </h2>
        <button type="button" class="icon-btn -mr-2" aria-label={t('check.close')} onClick={props.close}>
          <Icon name="close" />
        </button>
      </div>
      {props.children}
    </dialog>
  );
}
