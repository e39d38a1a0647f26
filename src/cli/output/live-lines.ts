/** Lines of a terminal that are drawn again in place. */
export class LiveLines {
  readonly #write: (text: string) => void;
  readonly #columns: number;
  #drawnRows = 0;
  #drawnText = "";

  /** `write` must leave control characters as they are. */
  constructor(write: (text: string) => void, columns: number) {
    this.#write = write;
    this.#columns = columns;
  }

  /** Draws lines without colours over those that were drawn last. */
  draw(lines: readonly string[]): void {
    // A wrapped line would take two rows, and the next lines would not cover this one.
    this.drawFitted(lines.map((line) => line.slice(0, this.#columns)));
  }

  /** The same for lines that fit the terminal, and may have colours. */
  drawFitted(lines: readonly string[]): void {
    const text = lines.join("\n");
    if (text === this.#drawnText) return;
    const cursorUp = this.#drawnRows === 0 ? "" : `\u001b[${this.#drawnRows}A`;
    this.#write(`${cursorUp}${lines.map((line) => `\u001b[2K${line}\n`).join("")}\u001b[J`);
    this.#drawnText = text;
    this.#drawnRows = lines.length;
  }
}
