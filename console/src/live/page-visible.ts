/** Whether someone looks at the page. */
import { useEffect, useState } from "react";

/** A hidden page lets go of its streams after this time: without TLS a browser has six connections for all tabs. */
const LET_GO_MS = 30_000;

/** False once the page has been hidden for a while. True again as soon as it is shown. */
export function usePageVisible(): boolean {
  const [isVisible, setVisible] = useState(true);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      clearTimeout(timer);
      if (document.visibilityState === "visible") setVisible(true);
      else timer = setTimeout(() => setVisible(false), LET_GO_MS);
    };
    look();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return isVisible;
}
