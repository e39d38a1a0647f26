/** Where the page is, and links that change it without loading the page again. */
import { type AnchorHTMLAttributes, type MouseEvent, useSyncExternalStore } from "react";

const MOVED = "gangway:moved";

/** The path and the query of the page. */
export function useLocation(): { readonly path: string; readonly search: URLSearchParams } {
  const href = useSyncExternalStore(subscribe, () => window.location.pathname + window.location.search);
  const [path = "/", query = ""] = href.split(/\?(.*)/s);
  return { path, search: new URLSearchParams(query) };
}

/** `replace`: Back leads past the place that is left. */
export function goTo(href: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) window.history.replaceState(null, "", href);
  else window.history.pushState(null, "", href);
  window.dispatchEvent(new Event(MOVED));
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { readonly href: string };

export function Link({ href, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!isPlain || event.defaultPrevented) return;
    event.preventDefault();
    goTo(href);
  };
  return <a href={href} onClick={follow} {...rest} />;
}

function subscribe(changed: () => void): () => void {
  window.addEventListener("popstate", changed);
  window.addEventListener(MOVED, changed);
  return () => {
    window.removeEventListener("popstate", changed);
    window.removeEventListener(MOVED, changed);
  };
}
