import { useMemo, useSyncExternalStore } from 'react'

export function useMedia(query: string): boolean {
  const media = useMemo(() => matchMedia(query), [query])
  return useSyncExternalStore(
    (listener) => {
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    () => media.matches,
  )
}

/** A table would show one column at a time. */
export const useNarrow = (): boolean => useMedia('(max-width: 760px)')
