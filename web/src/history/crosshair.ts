import { createContext, use, useSyncExternalStore } from 'react'
import type { Bounds } from './range.ts'

export interface Mark {
  /** the time it points at, ms; null: nowhere, so the newest values are told */
  readonly at: number | null
  /** somebody points, drags or walks by keyboard: the picture must hold still */
  readonly held: boolean
  /** what is being brushed, ms; null while nothing is */
  readonly brushed: Bounds | null
}

/** How long a pointer that does not move holds the picture. */
export const restMs = 30_000

/** One time under the crosshair for all charts of a view, and for the readout. It tells at most once per frame. */
export class Crosshair {
  #mark: Mark = { at: null, held: false, brushed: null }
  #rested = false
  #brushing = false
  #rest: ReturnType<typeof setTimeout> | undefined
  readonly #listeners = new Set<() => void>()
  #frame = 0

  readonly current = (): Mark => this.#mark

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  point(at: number | null): void {
    if (this.#mark.at === at) return
    if (at === null) this.#wake()
    else if (this.#mark.at === null) this.stir()
    this.#set({ at })
  }

  /** A pointer or a key moved. A picture that moves on under a pointer at rest is no movement. */
  stir(): void {
    this.#wake()
    this.#rest = setTimeout(() => {
      this.#rested = true
      this.#set({})
    }, restMs)
    this.#set({})
  }

  /** A button is down on a chart, and so far this lies between there and the pointer. */
  brush(brushing: boolean, brushed: Bounds | null = null): void {
    const { brushed: before } = this.#mark
    if (this.#brushing === brushing && before?.from === brushed?.from && before?.to === brushed?.to) return
    this.#brushing = brushing
    this.#set({ brushed })
  }

  #wake(): void {
    clearTimeout(this.#rest)
    this.#rested = false
  }

  #set(part: Partial<Mark>): void {
    const next = { ...this.#mark, ...part }
    const held = this.#brushing || (next.at !== null && !this.#rested)
    if (next.at === this.#mark.at && next.brushed === this.#mark.brushed && held === this.#mark.held) return
    this.#mark = { ...next, held }
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0
      for (const listener of this.#listeners) listener()
    })
  }
}

export const CrosshairContext = createContext<Crosshair | null>(null)

export function useCrosshair(): Crosshair {
  const crosshair = use(CrosshairContext)
  if (!crosshair) throw new Error('a chart is not inside a CrosshairContext')
  return crosshair
}

export function useMark<T extends number | boolean | null>(select: (mark: Mark) => T): T {
  const crosshair = useCrosshair()
  return useSyncExternalStore(crosshair.subscribe, () => select(crosshair.current()))
}
