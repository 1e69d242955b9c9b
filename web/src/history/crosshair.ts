import { createContext, use, useSyncExternalStore } from 'react'

export interface Mark {
  /** the time it points at, ms; null: nowhere, so the newest values are told */
  readonly at: number | null
  /** somebody points, drags or walks by keyboard: the picture must hold still */
  readonly held: boolean
}

/** One time under the crosshair for all charts of a view, and for the readout. It tells at most once per frame. */
export class Crosshair {
  #mark: Mark = { at: null, held: false }
  #pointed = false
  #brushing = false
  readonly #listeners = new Set<() => void>()
  #frame = 0

  readonly current = (): Mark => this.#mark

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  point(at: number | null): void {
    if (this.#mark.at === at) return
    this.#pointed = at !== null
    this.#set({ at, held: this.#pointed || this.#brushing })
  }

  brush(brushing: boolean): void {
    if (this.#brushing === brushing) return
    this.#brushing = brushing
    this.#set({ ...this.#mark, held: this.#pointed || brushing })
  }

  #set(mark: Mark): void {
    this.#mark = mark
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
