import { useEffect, useRef } from 'preact/hooks';
import { t } from '../i18n/text';

/** The bytes of a data URL. */
function bytes(dataUrl: string): Blob {
  const [head, data] = dataUrl.split(',', 2);
  const binary = atob(data ?? '');
  const type = /^data:([^;,]+)/.exec(head ?? '')?.[1] ?? 'image/png';
  return new Blob([Uint8Array.from(binary, (c) => c.charCodeAt(0))], { type });
}

/** Draws the picture of a captcha on a canvas. */
export function Puzzle({ dataUrl, broken }: { dataUrl: string; broken: () => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    let gone = false;
    createImageBitmap(bytes(dataUrl)).then((bitmap) => {
      if (gone || !canvas.current) return;
      canvas.current.width = bitmap.width;
      canvas.current.height = bitmap.height;
      canvas.current.getContext('2d')!.drawImage(bitmap, 0, 0);
    }, broken);
    return () => void (gone = true);
  }, [dataUrl]);
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={t('check.picture')}
      width="240"
      height="80"
      class="h-auto w-full max-w-72 rounded-lg bg-white"
    />
  );
}
