import { useState } from "react";

const SAID_MS = 2_000;

export function CopyButton({ text }: { readonly text: string }) {
  const [said, setSaid] = useState("Copy");
  const say = (word: string) => {
    setSaid(word);
    setTimeout(() => setSaid("Copy"), SAID_MS);
  };
  const copy = () => {
    // Browsers have no clipboard for pages without TLS that other machines serve.
    const clipboard: Clipboard | undefined = navigator.clipboard;
    if (clipboard === undefined) return say("Select and copy");
    clipboard.writeText(text).then(
      () => say("Copied"),
      () => say("Select and copy"),
    );
  };
  return (
    <button type="button" className="copy" onClick={copy}>
      {said}
    </button>
  );
}
