/** The name and the logo of the installation, which the server puts into the page. */
import { t } from '../i18n/text';
import { dark } from './theme';

interface Logo {
  src: string;
  width: number;
  height: number;
}

/** What the server puts into the page; nothing without settings. */
interface Brand {
  name?: string;
  logo?: Logo;
  dark?: Logo;
}

const brand: Brand = JSON.parse(document.getElementById('brand')?.textContent || '{}');

/** The name of the shop. */
export const shopName = (): string => brand.name ?? t('app.name');

/** The logo, or the mark and the name of the shop. */
export function Mark() {
  const logo = (dark.value && brand.dark) || brand.logo;
  if (logo) return <img key={logo.src} src={logo.src} width={logo.width} height={logo.height} alt={shopName()} />;
  return (
    <>
      <svg width="28" height="28" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" class="fill-ink" />
        <path d="M18.4 4 8 18h6.6L13 28l11-14.6h-6.8z" class="fill-page" />
      </svg>
      <bdi class="max-sm:sr-only">{shopName()}</bdi>
    </>
  );
}
