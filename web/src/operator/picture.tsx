/** The picture of a product: chosen or dropped, previewed, cropped to a square, and uploaded when the form is sent. */
import { useSignal, type Signal } from '@preact/signals';
import { useId } from 'preact/hooks';
import { Fault } from '@seckill/client/fault';
import { bearer } from '../api/session';
import { count } from '../i18n/text';
import { FileInput } from './file';
import { Field } from './form';
import { ot } from './texts';

/** A square crop: its position from 0 to 1 along the free range of each axis, and the zoom; zoom 1 is the largest square. */
export interface Crop {
  x: number;
  y: number;
  zoom: number;
}

interface Chosen {
  file: File;
  /** The file as a data URL: the Content-Security-Policy allows no blob: URLs. */
  url: string;
  cut: Crop | null;
}

/** Sides of a cut picture, in pixels: the server scales longer ones down. */
const LONGEST_PX = 1_600;
const MOST_ZOOM = 4;
const MIDDLE: Crop = { x: 0.5, y: 0.5, zoom: 1 };

/** The square of a cut, in pixels of the picture. */
export function cropRect({ x, y, zoom }: Crop, width: number, height: number): { left: number; top: number; side: number } {
  const side = Math.min(width, height) / zoom;
  return { left: (width - side) * x, top: (height - side) * y, side };
}

const refused = (): Fault => new Fault('REFUSED_PICTURE', '');

async function cropImage(file: File, cut: Crop): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw refused();
  });
  const { left, top, side } = cropRect(cut, bitmap.width, bitmap.height);
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = Math.max(1, Math.min(Math.round(side), LONGEST_PX));
  canvas.getContext('2d')!.drawImage(bitmap, left, top, side, side, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(refused())), file.type, 0.9));
}

/** Uploads a picture; returns its address. */
async function upload(picture: Blob): Promise<string> {
  const token = await bearer();
  const response = await fetch('/media/', { method: 'POST', body: picture, headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw response.status < 500 ? refused() : new Fault('UNAVAILABLE', '');
  return (await response.json()).url;
}

function read(file: File): Promise<string> {
  return new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.onerror = () => done(''); // the upload says what is wrong
    reader.readAsDataURL(file);
  });
}

/** The picture of a form. */
export interface PictureChoice {
  address: Signal<string>;
  chosen: Signal<Chosen | null>;
  /** The address of the picture, after the upload of a file that was chosen; empty = none. */
  result(): Promise<string>;
}

/** The picture of a form that begins with an address. */
export function usePicture(url: string): PictureChoice {
  const address = useSignal(url);
  const chosen = useSignal<Chosen | null>(null);
  const result = async (): Promise<string> => {
    const now = chosen.peek();
    if (now) {
      address.value = await upload(now.cut ? await cropImage(now.file, now.cut) : now.file);
      chosen.value = null;
    }
    return address.peek();
  };
  return { address, chosen, result };
}

/** The field: a place to drop a file, its preview, and what is kept of it. */
export function PictureField({ picture: { address, chosen } }: { picture: PictureChoice }) {
  const over = useSignal(false);
  const take = async (file: File | undefined): Promise<void> => {
    if (file) chosen.value = { file, url: '', cut: null };
    if (file) chosen.value = { file, url: await read(file), cut: null };
  };
  const now = chosen.value;
  const shown = now ? now.url : address.value;
  return (
    <>
      <div
        class={`grid gap-3 rounded-xl border-2 border-dashed p-3 ${over.value ? 'border-accent bg-sunk' : 'border-edge'}`}
        data-drop
        onDragOver={(event) => {
          event.preventDefault();
          over.value = true;
        }}
        onDragLeave={() => (over.value = false)}
        onDrop={(event) => {
          event.preventDefault();
          over.value = false;
          void take(event.dataTransfer?.files[0]);
        }}
      >
        <Field label={ot('op.upload')}>
          <FileInput accept="image/png,image/jpeg,image/gif,image/webp" file={now?.file.name} take={take} />
        </Field>
        <p class="text-sm text-soft">{ot('op.pictureDrop')}</p>
        {shown && <Preview url={shown} cut={now?.cut ?? MIDDLE} />}
        {now && <CropFields cut={now.cut ?? MIDDLE} set={(cut) => (chosen.value = { ...now, cut })} />}
        {now && (
          <button type="button" class="link justify-self-start text-sm" onClick={() => (chosen.value = null)}>
            {ot('op.pictureDrop.undo')}
          </button>
        )}
      </div>
      {!now && (
        <Field label={ot('op.picture')}>
          <input class="field font-normal" value={address.value} onInput={(event) => (address.value = event.currentTarget.value)} />
        </Field>
      )}
    </>
  );
}

/** Most characters of an alternative text, as internal/staff/operator counts them. */
const MOST_ALT = 200;

/** The alternative text of the picture, with a hint and a counter. A text that is too long is refused by the server: maxLength would count other units. */
export function AltField({ text }: { text: string }) {
  const id = useId();
  const value = useSignal(text);
  const n = [...value.value.trim()].length;
  return (
    <div class="grid gap-1.5">
      <Field label={ot('op.alt')}>
        <textarea
          name="imageAlt"
          class="field font-normal"
          rows={2}
          value={value.value}
          aria-invalid={n > MOST_ALT ? 'true' : undefined}
          aria-describedby={`${id}-hint ${id}-count`}
          onInput={(event) => (value.value = event.currentTarget.value)}
        />
      </Field>
      <p id={`${id}-hint`} class="text-sm text-soft">
        {ot('op.altHint')}
      </p>
      <p id={`${id}-count`} class={`text-sm tabular-nums ${n > MOST_ALT ? 'font-medium text-danger' : 'text-soft'}`}>
        {ot('op.altCount', { n: count(n), most: count(MOST_ALT) })}
      </p>
    </div>
  );
}

/** The picture as the shop shows it: in the list, and beside a name. */
function Preview({ url, cut: { x, y, zoom } }: { url: string; cut: Crop }) {
  const at = `${x * 100}% ${y * 100}%`;
  return (
    <figure class="grid gap-1 text-sm text-soft">
      <div class="flex flex-wrap items-end gap-3">
        {['aspect-square w-32', 'size-14'].map((size) => (
          <span key={size} class={`block overflow-hidden rounded-lg bg-sunk ${size}`} data-preview>
            <img src={url} alt="" class="size-full object-cover" style={{ objectPosition: at, transformOrigin: at, transform: `scale(${zoom})` }} />
          </span>
        ))}
      </div>
      <figcaption>{ot('op.picturePreview')}</figcaption>
    </figure>
  );
}

/** The fields of the crop. */
function CropFields({ cut, set }: { cut: Crop; set: (cut: Crop) => void }) {
  const range = (name: keyof Crop, least: number, most: number) => (
    <Field label={ot(`op.cut.${name}`)}>
      <input
        type="range"
        class="w-full min-w-0 accent-(--color-fill)"
        min={least}
        max={most}
        step="any"
        value={cut[name]}
        onInput={(event) => set({ ...cut, [name]: Number(event.currentTarget.value) })}
      />
    </Field>
  );
  return (
    <fieldset class="grid gap-2 text-sm sm:grid-cols-3">
      <legend class="mb-1 font-medium">{ot('op.cut')}</legend>
      {range('zoom', 1, MOST_ZOOM)}
      {range('x', 0, 1)}
      {range('y', 0, 1)}
    </fieldset>
  );
}
