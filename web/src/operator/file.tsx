import { useSignal } from '@preact/signals';
import { ot } from './texts';

interface Props {
  accept: string;
  name?: string;
  required?: boolean;
  /** The name of the chosen file, where the caller keeps it. */
  file?: string | undefined;
  take?: (file: File | undefined) => unknown;
}

/** A field for a file, in the words of the page instead of the browser's. */
export function FileInput({ accept, name, required, file, take }: Props) {
  const chosen = useSignal<string | undefined>(undefined);
  return (
    <>
      <input
        type="file"
        name={name}
        accept={accept}
        required={required}
        class="peer sr-only"
        onChange={({ currentTarget: { files } }) => {
          chosen.value = files?.[0]?.name;
          take?.(files?.[0]);
        }}
      />
      <span class="flex flex-wrap items-center gap-3 text-sm font-normal peer-focus-visible:outline-3 peer-focus-visible:outline-offset-2 peer-focus-visible:outline-accent">
        <span class="btn" aria-hidden="true">
          {ot('op.upload.choose')}
        </span>
        <bdi class="text-soft wrap-anywhere">{take ? file : chosen.value}</bdi>
      </span>
    </>
  );
}
