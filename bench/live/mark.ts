/** One of the pods that change, where it is. */
export interface Change {
  readonly cluster: string
  readonly namespace: string
}

/** Wall clock with fractions, ms: comparable between the processes of one machine, and with times that the hub tells. */
export const nowMs = (): number => performance.timeOrigin + performance.now()

/** Of the change with this number, made now; later ones are greater as text. */
export const markOf = (number: number): string => `bench ${nowMs().toFixed(3)} ${number}.`

/** When it was made, and its number. */
export const mark = /bench (\d{13}\.\d{3}) (\d+)\./g

/** The share of ascending numbers below which so many of them are, such as 0.99. */
export const at = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
