import { encode } from 'uqr';

/** A text as a QR code: dark on light in both themes, as scanners need it. */
export function Qr({ text, label }: { text: string; label: string }) {
  const { size, data } = encode(text, { border: 2 });
  const path = data.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
  return (
    <svg viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} class="w-52 rounded-xl bg-white" shape-rendering="crispEdges">
      <path d={path} fill="#000" />
    </svg>
  );
}
