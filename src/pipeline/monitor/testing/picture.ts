type Item = Readonly<Record<string, unknown>>
type Event = Readonly<{ event: string; data: Item }>

const keyOf = ({ name, namespace }: Item): string => (namespace === undefined ? String(name) : `${namespace}/${name}`)

/** What a client of `?protocol=2` holds, written from the specification alone. */
export class Picture {
  readonly #kinds = new Map<string, Map<string, Item>>()
  readonly statuses = new Map<string, Item>()

  apply({ event, data }: Event): void {
    const { cluster, kind } = data
    const place = `${cluster} ${kind}`
    if (event === 'status') {
      this.statuses.set(String(cluster), data)
      if (data.status === 'removed')
        for (const key of [...this.#kinds.keys()]) if (key.startsWith(`${cluster} `)) this.#kinds.delete(key)
    } else if (event === 'snapshot') {
      this.#kinds.set(place, new Map((data.items as Item[]).map((item) => [keyOf(item), item])))
    } else if (event === 'delta') {
      const held = this.#kinds.get(place)
      if (!held) throw new Error(`a delta of ${place}, of which there was no snapshot`)
      for (const key of data.remove as string[]) held.delete(key)
      for (const change of data.upsert as Item[]) {
        const merged = Object.entries({ ...held.get(keyOf(change)), ...change }).filter(([, value]) => value !== null)
        held.set(keyOf(change), Object.fromEntries(merged))
      }
    }
  }

  /** sorted by key */
  items(cluster: string, kind: string): readonly Item[] {
    const held = [...(this.#kinds.get(`${cluster} ${kind}`) ?? [])]
    return held.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item)
  }

  get places(): readonly string[] {
    return [...this.#kinds.keys()].sort()
  }
}
