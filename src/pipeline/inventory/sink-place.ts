import type { SinkFamily } from '#sinks'

/** A sink by its place. */
export interface SinkPlace {
  readonly family: SinkFamily
  readonly namespace: string
  readonly name: string
}

export const placeText = ({ family, namespace, name }: SinkPlace): string => `${family}/${namespace}/${name}`
