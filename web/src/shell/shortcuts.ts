import { useEffect, useRef } from 'react'
import { preference } from '../preferences.ts'
import { accessPath, eventsPath, guidePath, navigate, registriesPath, typesPath } from '../router.tsx'

export const shortcuts: readonly (readonly [keys: string, what: string])[] = [
  ['Ctrl K or /', 'search everything; ↑ ↓ Enter choose'],
  ['f', 'to the filter of the table'],
  ['g c', 'to the fleet'],
  ['g p', 'to the pods'],
  ['g t', 'to the types'],
  ['g e', 'to the events'],
  ['g r', 'to the registries'],
  ['g a', 'to what you may see'],
  ['g h', 'to the guides'],
  ['j and k', 'to the next and the previous row'],
  ['Enter', 'open the row'],
  ['Esc', 'close what is open; leave a field'],
  ['← → Home End', 'on a chart: move the crosshair'],
  ['+ and -', 'on a chart: zoom; Esc goes back'],
  ['PageUp PageDown', 'on a chart: ten steps'],
  ['Tab', 'in the YAML editor: indent, with Shift less; Esc leaves it'],
  ['Ctrl Enter', 'in a form with a long text: send it'],
  ['?', 'this sheet'],
]

interface Openers {
  readonly openSearch: () => void
  readonly openHelp: () => void
}

/** Single keys act only where nothing is typed and no dialog is open, and not at all where they are switched off. */
export function useShortcuts(openers: Openers): void {
  const latest = useRef(openers)
  latest.current = openers
  useEffect(() => {
    let goAt = 0
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey) {
        event.preventDefault()
        latest.current.openSearch()
        return
      }
      const target = event.target instanceof Element ? event.target : null
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open], :popover-open.menu'))
        return
      if (target?.closest('input, select, textarea')) {
        if (event.key === 'Escape' && target instanceof HTMLElement) target.blur()
        return
      }
      if (preference('shortcuts', 'on') !== 'on') return
      const going = event.timeStamp - goAt < 1200
      goAt = 0
      switch (event.key) {
        case '/':
          event.preventDefault()
          return latest.current.openSearch()
        case '?':
          return latest.current.openHelp()
        case 'g':
          goAt = event.timeStamp
          return
        case 'c':
          if (going) navigate('/')
          return
        case 'p':
          if (going) navigate(typesPath('pods'))
          return
        case 'e':
          if (going) navigate(eventsPath)
          return
        case 't':
          if (going) navigate(typesPath())
          return
        case 'r':
          if (going) navigate(registriesPath())
          return
        case 'a':
          if (going) navigate(accessPath('me'))
          return
        case 'h':
          if (going) navigate(guidePath())
          return
        case 'f':
          event.preventDefault()
          return document.querySelector<HTMLInputElement>('[data-filter]')?.focus()
        case 'j':
        case 'k':
          document.dispatchEvent(new CustomEvent('clusterpulse:walk', { detail: event.key === 'j' ? 1 : -1 }))
          return
      }
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}
