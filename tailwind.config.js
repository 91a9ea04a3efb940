// Colours, fonts and radii are names for the variables of static/src/app.css, where light and dark
// are told apart. Only the listed files are searched for class names:
// a word of other Go code that happens to be one would change the stylesheet.
module.exports = {
  content: ['./views/{layout,components,pages}/*.{templ,go}', './static/src/*.js'],
  theme: {
    extend: {
      colors: {
        bg: 'var(--bg)',
        surface: 'var(--surface)',
        sunken: 'var(--sunken)',
        line: 'var(--line)',
        'line-strong': 'var(--line-strong)',
        ink: 'var(--ink)',
        soft: 'var(--ink-soft)',
        faint: 'var(--ink-faint)',
        accent: 'var(--accent)',
        'accent-soft': 'var(--accent-soft)',
        good: 'var(--good)',
        'good-soft': 'var(--good-soft)',
        warn: 'var(--warn)',
        'warn-soft': 'var(--warn-soft)',
        bad: 'var(--bad)',
        'bad-soft': 'var(--bad-soft)',
      },
      fontFamily: { sans: 'var(--sans)', mono: 'var(--mono)' },
    },
  },
};
