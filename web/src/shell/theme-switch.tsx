import { IconDeviceDesktop, IconMoon, IconSun } from '@tabler/icons-react'
import { type ReactNode, useEffect } from 'react'
import { usePreference } from '../preferences.ts'

const dark = matchMedia('(prefers-color-scheme: dark)')
const choices = [
  { value: 'light', label: 'Light', Icon: IconSun },
  { value: 'dark', label: 'Dark', Icon: IconMoon },
  { value: 'system', label: 'As the system', Icon: IconDeviceDesktop },
] as const

/** Light, dark, or as the system says. theme.js applies the stored choice before the first paint; this follows it. */
export function useTheme(): [choice: string, set: (choice: string) => void] {
  const [choice, set] = usePreference('theme', 'system')
  useEffect(() => {
    const apply = () => {
      const isDark = choice === 'dark' || (choice !== 'light' && dark.matches)
      document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
    }
    apply()
    dark.addEventListener('change', apply)
    return () => dark.removeEventListener('change', apply)
  }, [choice])
  return [choice, set]
}

export function ThemeSwitch(): ReactNode {
  const [choice, set] = useTheme()
  return (
    <fieldset className="switch" aria-label="Theme">
      {choices.map(({ value, label, Icon }) => (
        <button
          key={value}
          type="button"
          aria-pressed={choice === value}
          onClick={() => set(value)}
          aria-label={label}
          data-tip={label}
        >
          <Icon size={15} aria-hidden="true" />
        </button>
      ))}
    </fieldset>
  )
}
