/** What is shown once, and the steps that ask before they are taken. */
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { isolate } from '../i18n/text';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { Form } from './form';
import { ot } from './texts';

/** A secret with a button that copies it. */
export function Secret({ title, hint, text, close }: { title: string; hint: string; text: string; close: () => void }) {
  const code = useRef<HTMLElement>(null);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      toast(ot('op.copied'));
    } catch {
      getSelection()?.selectAllChildren(code.current!); // no clipboard here, as on a page without https
    }
  };
  return (
    <Dialog title={title} close={close}>
      <p>{hint}</p>
      <code ref={code} class="note mt-3 block font-mono text-sm break-all">
        {text}
      </code>
      <button class="btn btn-main mt-3" onClick={() => void copy()}>
        {ot('op.copy')}
      </button>
    </Dialog>
  );
}

/** A small button whose accessible name says what it is about. */
export function SmallButton({ name, about, act }: { name: string; about: string; act: () => void }) {
  return (
    <button class="btn min-h-9 px-3 py-1.5 text-sm" aria-label={`${isolate(name)}: ${about}`} onClick={act}>
      <bdi>{name}</bdi>
    </button>
  );
}

type Refused = Awaited<ReturnType<Parameters<typeof Form>[0]['send']>>;

interface ConfirmProps {
  id: string;
  name: string;
  words: string;
  send: (id: string) => Promise<Refused>;
  close: () => void;
  done: () => void;
}

/** Confirms a step. */
export function ConfirmDialog({ id, name, words, send, close, done }: ConfirmProps): ComponentChildren {
  return (
    <Dialog title={name} close={close}>
      <Form label={name} send={() => send(id)} done={done}>
        <p class="wrap-anywhere">{words}</p>
      </Form>
    </Dialog>
  );
}

/** A box with its words. */
export function Checkbox({ name, words, on }: { name: string; words: string; on: boolean }) {
  return (
    <label class="flex items-center gap-2">
      <input type="checkbox" name={name} class="size-4 accent-ink" defaultChecked={on} />
      {words}
    </label>
  );
}

/** The boxes of a form that are checked. */
export const checked = <T extends string>(form: HTMLFormElement, names: readonly T[]): T[] =>
  names.filter((name) => (form.elements.namedItem(name) as HTMLInputElement).checked);
