/** What a browser does in a login: it follows redirects, and keeps the cookies of each host. */
export class TestBrowser {
  readonly #jars = new Map<string, Map<string, string>>();

  /** The cookies of a host. */
  cookies(url: string): Map<string, string> {
    const { origin } = new URL(url);
    const jar = this.#jars.get(origin) ?? new Map<string, string>();
    this.#jars.set(origin, jar);
    return jar;
  }

  /** One request, without redirects. */
  async send(url: string, init: RequestInit = {}): Promise<Response> {
    const jar = this.cookies(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = new Headers(init.headers);
    if (cookie !== "") headers.set("cookie", cookie);
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const text of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = text.split(/; */);
      const [name = "", value = ""] = pair.split(/=(.*)/s);
      const isGone = attributes.some((one) => /^max-age=0$/i.test(one) || /^expires=.*1970/i.test(one));
      if (isGone) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  }

  /** Opens a page, and follows redirects to other pages until one `stops`. Returns that answer and its address. */
  async open(
    url: string,
    stops: (url: string) => boolean = () => false,
  ): Promise<{ readonly url: string; readonly response: Response | null }> {
    let next = url;
    for (let hops = 0; hops < 20; hops++) {
      if (stops(next)) return { url: next, response: null };
      const response = await this.send(next);
      const location = response.headers.get("location");
      if (location === null) return { url: next, response };
      await response.body?.cancel();
      next = new URL(location, next).href;
    }
    throw new Error(`${url} leads in a circle`);
  }
}
