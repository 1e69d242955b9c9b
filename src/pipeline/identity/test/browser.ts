interface Cookie {
  readonly value: string
  readonly path: string
}

/** As much of a browser as signing in takes: cookies with paths, redirects step by step, and forms. */
export class Browser {
  readonly #cookies = new Map<string, Cookie>()

  take(lines: readonly string[]): void {
    for (const line of lines) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim())
      const name = pair.slice(0, pair.indexOf('='))
      const value = pair.slice(pair.indexOf('=') + 1)
      const attribute = (wanted: string) =>
        attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1)
      const path = attribute('path') ?? '/'
      const expired = attribute('max-age') === '0' || Date.parse(attribute('expires') ?? '9999-01-01') < Date.now()
      if (expired) this.#cookies.delete(`${name} ${path}`)
      else this.#cookies.set(`${name} ${path}`, { value, path })
    }
  }

  cookieHeader(path: string): string {
    return [...this.#cookies]
      .filter(([, cookie]) => path.startsWith(cookie.path))
      .map(([key, { value }]) => `${key.split(' ')[0]}=${value}`)
      .join('; ')
  }

  get names(): readonly string[] {
    return [...this.#cookies.keys()].map((key) => key.split(' ')[0] ?? '')
  }

  async send(url: string, form?: Readonly<Record<string, string>>): Promise<Response> {
    const cookie = this.cookieHeader(new URL(url).pathname)
    const answer = await fetch(url, {
      redirect: 'manual',
      method: form ? 'POST' : 'GET',
      headers: cookie ? { cookie } : {},
      ...(form && { body: new URLSearchParams(form) }),
    })
    this.take(answer.headers.getSetCookie())
    return answer
  }

  /** Goes on, signing in and consenting where asked, until it is sent to `destination`; @returns the whole address */
  async signIn(start: string, login: string, destination: string): Promise<string> {
    let url = start
    for (let step = 0; step < 20; step++) {
      if (url.startsWith(destination)) return url
      let answer = await this.send(url)
      if (answer.status === 200) {
        const page = await answer.text()
        const action = /action="([^"]+)"/.exec(page)?.[1] ?? ''
        const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1] ?? ''
        answer = await this.send(new URL(action, url).href, { prompt, login, password: 'any' })
      }
      const next = answer.headers.get('location')
      if (!next) throw new Error(`${url} answered ${answer.status} ${(await answer.text()).slice(0, 300)}`)
      url = new URL(next, url).href
    }
    throw new Error('no end of redirects')
  }
}
