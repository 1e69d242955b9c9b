import { useSyncExternalStore } from 'react'

/** What a person chose, kept in this browser. Storage may be forbidden or full: the choice then lasts for the tab. */
const held = new Map<string, string>()
const listeners = new Set<() => void>()
const keyOf = (name: string) => `clusterpulse.${name}`

function read(name: string): string | null {
  const value = held.get(name)
  if (value !== undefined) return value
  try {
    return localStorage.getItem(keyOf(name))
  } catch {
    return null
  }
}

export function setPreference(name: string, value: string): void {
  held.set(name, value)
  try {
    localStorage.setItem(keyOf(name), value)
  } catch {
    // kept in `held`
  }
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function usePreference(name: string, otherwise: string): [value: string, set: (value: string) => void] {
  const value = useSyncExternalStore(subscribe, () => read(name)) ?? otherwise
  return [value, (next) => setPreference(name, next)]
}

export const preference = (name: string, otherwise: string): string => read(name) ?? otherwise
