import { createHash } from 'node:crypto'
import type { Row } from '../../src/pipeline/extract/index.ts'
import type { Delivery, Writing } from '../../src/pipeline/sinks/index.ts'
import { aRow, at } from '../../src/pipeline/sinks/testing/delivery.ts'

/** Rows of one inventory, made when they are asked for, and how often each was changed. */
export class Inventory {
  readonly #writing: Writing
  readonly #versions: Uint32Array
  #sequence = 0
  #next = 0

  constructor(writing: Writing, count: number) {
    this.#writing = writing
    this.#versions = new Uint32Array(count)
  }

  /** Changes so many rows, one after the other. @returns them */
  change(count: number): Row[] {
    return Array.from({ length: Math.max(1, Math.round(count)) }, () => {
      const n = this.#next++ % this.#versions.length
      this.#versions[n] = (this.#versions[n] ?? 0) + 1
      return this.#row(n)
    })
  }

  /** The next snapshot. @param changed what differs from the one before; absent: the driver finds out */
  delivery(changed: readonly Row[] | undefined): Delivery {
    const base = at(this.#sequence++)
    const position = at(this.#sequence)
    return {
      writing: this.#writing,
      position,
      generation: 1,
      complete: true,
      checksum: createHash('sha256').update(String(this.#sequence)).digest('hex'),
      itemCount: this.#versions.length,
      takenAt: Date.now(),
      rows: () => this.#rows(),
      ...(changed && { changes: { base, put: changed, removed: [] } }),
      maxPartBytes: 16 * 2 ** 20,
    }
  }

  *#rows(): Generator<Row> {
    for (let n = 0; n < this.#versions.length; n++) yield this.#row(n)
  }

  /** About what a profile of Deployments gives. */
  #row(n: number): Row {
    const version = this.#versions[n] ?? 0
    return aRow(n, {
      image: `registry.example.com/shop/web:${version}`,
      replicas: 3,
      labels: { 'app.kubernetes.io/name': `web-${n}`, 'app.kubernetes.io/part-of': 'shop', tier: 'frontend' },
      owner: 'team-a@example.com',
    })
  }
}
