/* cmd_recipes.c - berlu recipes: the presets of training side by side. SPDX-License-Identifier: MIT
 *
 * Every value is resolved as training would resolve it. The table shows the settings in which
 * recipes differ, --json all of them. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "output.h"
#include "train/recipe.h"

enum { RECIPES_MAX = 16 };

static const struct {
    const char *name, *about;
} abouts[] = {
    {"paper", "what the BerLU paper states; where it is silent, the commonest choice"},
    {"deit", "the official training of DeiT: 300 epochs, strong augmentation"},
    {"convnext", "the official training of ConvNeXt: 300 epochs, strong augmentation"},
    {"plain", "AdamW at a constant rate, nothing else: for first looks and tests"},
};

static const char *about_of(const char *name)
{
    for (size_t i = 0; i < COUNT(abouts); i++)
        if (strcmp(abouts[i].name, name) == 0)
            return abouts[i].about;
    return "";
}

static int is_shown(const setting *row)
{
    return row->kind != SETTING_TEXT && row->kind != SETTING_LIST && strcmp(row->key, "recipe") != 0;
}

static void setting_json(output *out, const train_settings *s, const setting *row)
{
    text value = {0};
    double number = 0;
    if (recipe_value(s, row, 0, &value) && value.data) {
        if (row->kind == SETTING_CHOICE)
            output_string(out, row->key, value.data);
        else if (row->kind == SETTING_FLAG)
            output_bool(out, row->key, strcmp(value.data, "0") != 0);
        else if (number_parse(value.data, &number) && row->kind == SETTING_COUNT)
            output_int(out, row->key, (int64_t)number);
        else
            output_real(out, row->key, number);
    }
    out->json.failed |= value.failed;
    text_free(&value);
}

static berlu_status recipes_json(const train_settings *s, size_t count)
{
    output out;
    output_start(&out);
    output_array(&out, "recipes");
    for (size_t i = 0; i < count; i++) {
        output_object(&out, NULL);
        output_string(&out, "name", recipe_names[i]);
        output_string(&out, "about", about_of(recipe_names[i]));
        output_object(&out, "settings");
        for (size_t k = 0; k < train_settings_count; k++)
            if (is_shown(&train_settings_table[k]))
                setting_json(&out, &s[i], &train_settings_table[k]);
        output_end(&out);
        output_end(&out);
    }
    return output_print(&out);
}

/* One line of the table, where the recipes differ. */
static berlu_status setting_line(const train_settings *s, size_t count, const setting *row)
{
    text values[RECIPES_MAX] = {{0}};
    int differ = 0;
    berlu_status status = BERLU_OK;
    for (size_t i = 0; i < count; i++) {
        recipe_value(&s[i], row, 0, &values[i]);
        TRY_DONE(text_status(&values[i]));
        differ |= strcmp(values[i].data, values[0].data) != 0;
    }
    if (differ)
        printf("%-14s", row->option);
    for (size_t i = 0; differ && i < count; i++)
        printf("  %-*s%s", i + 1 < count ? 12 : 0, values[i].data, i + 1 < count ? "" : "\n");
done:
    for (size_t i = 0; i < count; i++)
        text_free(&values[i]);
    return status;
}

static berlu_status recipes_print(const train_settings *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%-10s %s\n", recipe_names[i], about_of(recipe_names[i]));
    printf("\n%-14s", "setting");
    for (size_t i = 0; i < count; i++)
        printf("  %-*s%s", i + 1 < count ? 12 : 0, recipe_names[i], i + 1 < count ? "" : "\n");
    for (size_t k = 0; k < train_settings_count; k++)
        if (is_shown(&train_settings_table[k]))
            TRY(setting_line(s, count, &train_settings_table[k]));
    puts("\nlr of paper and deit: 0.001 x images per update / 1024. What is given on the\n"
         "command line wins. `berlu train --recipe NAME --help` shows all defaults.");
    return BERLU_OK;
}

static berlu_status recipes(options *o)
{
    train_settings s[RECIPES_MAX];
    size_t count = 0;
    berlu_status status = BERLU_OK;
    for (; status == BERLU_OK && recipe_names[count] && count < RECIPES_MAX; count++) {
        recipe_init(&s[count]);
        status = recipe_set(&s[count], "recipe", recipe_names[count]);
        if (status == BERLU_OK)
            status = recipe_complete(&s[count]);
    }
    if (status == BERLU_OK)
        status = options_json(o) ? recipes_json(s, count) : recipes_print(s, count);
    for (size_t i = 0; i < count; i++)
        recipe_free(&s[i]);
    return status;
}

static const option_row rows[] = {NO_COMPUTE_ROWS, {0}};

const command cmd_recipes = {"recipes", "the presets of training and in what they differ",
                             "  berlu recipes\n"
                             "  berlu train --recipe plain --help",
                             rows, recipes};
