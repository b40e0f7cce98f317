// Rules for the modules of pages and for the scripts that drive browsers.
export default [
  {
    files: ['**/*.js'],
    languageOptions: { ecmaVersion: 2022, sourceType: 'module' },
    rules: {
      eqeqeq: 'error', 'no-constant-condition': 'error', 'no-dupe-keys': 'error', 'no-fallthrough': 'error', 'no-self-assign': 'error',
      'no-unreachable': 'error', 'no-unused-vars': 'error', 'no-var': 'error', 'prefer-const': 'error',
    },
  },
];
